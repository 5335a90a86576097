"""The audit of a job: what its source holds, counted again without Beam, beside what its results account for."""
