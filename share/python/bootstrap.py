# SPDX-License-Identifier: MIT
# What giltracer starts in place of the program; the work is done by program.py beside it. It runs
# as __main__, whose names the program gets to see: so it must not leave any, and one expression
# whose lambda is private to program.py is all there is.
(lambda space: exec(compile(__loader__.get_data(__file__[:-12] + 'program.py'),
                            __file__[:-12] + 'program.py', 'exec', 0, True), space)
 or space['main'](globals()))({'__name__': 'giltracer.program', '__builtins__': __builtins__})
