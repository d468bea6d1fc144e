# SPDX-License-Identifier: MIT
# giltracer starts this file in place of the program; program.py in the same folder does the work.
# This file runs as __main__, whose names the program can see. It must not leave any, so it is a
# single expression.
(lambda space: exec(compile(__loader__.get_data(__file__[:-12] + 'program.py'),
                            __file__[:-12] + 'program.py', 'exec', 0, True), space)
 or space['main'](globals()))({'__name__': 'giltracer.program', '__builtins__': __builtins__})
