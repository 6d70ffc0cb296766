"""What runs inside the child, with the user's program: it records, replays, measures and answers in records.

Rooms, each importing only those before it: ``execution`` (what was recorded, as data), ``recording``, ``replaying``,
``differences``, ``kernels`` (one kernel alone), ``judging``. Private names of Warp are touched in ``warp_hooks.py``
only. All of it needs the standard library, numpy and warp alone: the child runs in the user's environment.
"""
