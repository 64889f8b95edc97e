"""Files and folders over one UDT connection: `send` and `receive`.

The protocol is described in docs/transfer.md. It needs a reliable stream of bytes in both
directions and nothing else of the transport: see `Connection`.
"""

from cwnd.transfer.connection import Connection, Outcome, Progress, TransferError
from cwnd.transfer.receiver import receive
from cwnd.transfer.sender import send

__all__ = ["Connection", "Outcome", "Progress", "TransferError", "receive", "send"]
