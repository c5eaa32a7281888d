"""What the server refuses; each message is one line for whoever runs it.

ServerError
└── BundleError   a bundle that is damaged, unsafe, or of a version we do not read
"""


class ServerError(Exception):
    exit_code = 2


class BundleError(ServerError):
    pass
