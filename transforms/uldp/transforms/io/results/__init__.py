"""Files of results: each file's name follows from its content, so that writing twice gives the same files.

The file of a pane is named by collection, version, window, revision and estimator. The number of late and rejected
reports is unknown in advance, so they are collected within a bundle, and the file is named by their digest. The same
holds for panes that count no report, and for all panes of a bundle that has many, of a collection or of several.
"""

from uldp.transforms.io.results.names import (
    estimate_file,
    file_of_all,
    folder_of,
    shared_file,
    shared_folder,
    statistic_file,
    stored_file,
    window_folder,
)

__all__ = [
    "estimate_file",
    "file_of_all",
    "folder_of",
    "shared_file",
    "shared_folder",
    "statistic_file",
    "stored_file",
    "window_folder",
]
