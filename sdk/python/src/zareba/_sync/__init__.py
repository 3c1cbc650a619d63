"""The client that blocks, made from :mod:`zareba._async`."""
