"""The client that does not block. The other one in :mod:`zareba._sync` is made from this."""
