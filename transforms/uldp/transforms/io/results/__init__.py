"""Files of results: each file's name follows from its content, so that writing twice gives the same files.

The file of a pane is named by collection, version, window, revision and estimator; that of several panes by their
collection, their time, their digest and their estimator. The number of late and rejected reports is unknown in advance,
so they are collected within a bundle, and the file is named by their digest.
"""
