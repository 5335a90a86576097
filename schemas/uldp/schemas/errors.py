"""The errors that a user can mend, as a tree: whoever calls this package catches one class, and so does ``uldp``."""


class UldpError(ValueError):
    """What a user can mend.

    The message has a line for each problem, which names the thing and says what to do. ``uldp`` prints these lines. Any
    other error is a fault of the program, or of the machine if it is an ``OSError``.
    """


class RequestError(UldpError):
    """What was asked cannot be done; the message names the option, the setting or the file to change."""


class EndpointError(UldpError):
    """A broker, a database or a file system cannot do what a command asks, or does not answer."""


class DataError(UldpError):
    """Stored data is damaged, or something else than what is read."""
