"""Questions of the command line: which counts they are put to, and how their answers are printed and written."""
