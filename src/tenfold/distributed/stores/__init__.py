"""Keys and values that processes share, by which they find each other: in memory, in a file, at a port."""

from tenfold.distributed.stores.store import FileStore, HashStore, PrefixStore, Store
from tenfold.distributed.stores.tcp_store import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
