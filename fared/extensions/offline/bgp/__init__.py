"""BGP messages of files: ``capture`` puts TCP streams together, ``decode`` makes documents."""
