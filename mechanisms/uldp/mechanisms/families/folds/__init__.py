"""Reports that a linear map folds into counts."""
