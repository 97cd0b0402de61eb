"""Whether training goes on, waits or steps: decisions over the messages of `protocol/`, without threads or sockets."""
