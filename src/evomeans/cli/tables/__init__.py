"""Tables in and out: from the files that people have to a matrix, and from a fit to files."""
