//! Runs the executor on this machine: in this process or in a local server.
