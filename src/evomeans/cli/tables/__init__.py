"""Tables in and out: from the files that people have to a matrix, and from a fit to files."""

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Tables need polars, which is not installed: pip install 'evomeans[cli]'"
    ) from error
