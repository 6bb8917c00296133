"""What every process of fared needs: start, signals, children, the log stream, directories."""
