"""How people and programs see and change a router: documents, API, command line, recordings."""
