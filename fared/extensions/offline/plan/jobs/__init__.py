"""Which training jobs may share links, and when each should start (CASSINI, NSDI'24).

``circle`` finds the best time shifts of the jobs on one link, ``placement`` the links that jobs
share by fared's own weights, ``shifts`` one shift of each job that suits all of its links. ``file``
reads jobs, ``measured`` finds the pattern of one in a measured load, ``document`` makes what
``fared-cli plan jobs`` prints, and ``picture`` what it draws.
"""
