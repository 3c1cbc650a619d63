"""What a client of OpenHands expects of an executor, one module per subject.

The order is the order of execution: `start` first, because it looks at a workspace that nothing
has touched yet.
"""

from . import editor, environment, files, git, interact, output, search, session, shell, start, timeouts

MODULES = (start, shell, output, timeouts, interact, files, editor, environment, git, search, session)

ALL = [case for module in MODULES for case in module.CASES]
