"""How people and programs see and change a router.

``documents`` has what is shown, ``api`` serves it and takes requests, ``cli`` is ``fared-cli``, and
``recording`` writes down a router's inputs and plays them again.
"""
