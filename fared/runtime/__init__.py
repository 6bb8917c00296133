"""What every process of fared needs: start, signals, children, the log stream, directories.

``startup`` makes the interpreter start fast and stay small, ``extensions`` names what plugs in.
``children`` starts child processes, ``supervisor`` starts servers again that end, ``connection``
carries messages between them; ``child`` is what a child does first. ``signals`` holds signals
until somebody handles them. ``log_output`` and ``journal`` are the way of a log line,
``descriptors`` divides the descriptors of a process, ``state_directory`` has its files, ``sockets``
names those on which processes are reached.
"""
