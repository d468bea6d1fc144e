# SPDX-License-Identifier: MIT
"""Runs %%giltracer in a real kernel, through nbclient: notebook.py PYTHON..."""
import json
import re
import sys

import nbclient
import nbformat

CELLS = [
    "%load_ext giltracer\nimport threading, time\nthreads = 3",
    """%%giltracer result
def spin(until):
    while time.time() < until:
        pass
until = time.time() + 1.0
workers = [threading.Thread(target=spin, args=(until,)) for _ in range(threads)]
[w.start() for w in workers]
[w.join() for w in workers]
answer = 42""",
    "import json; print(json.dumps([answer, result.document['verdict']['kind'], sum(t['wait_ns'] for t in "
    "result.document['threads'])]))",
    "%giltracer --state-detect",
    "%%giltracer states\nuntil = time.time() + 0.1\nwhile time.time() < until:\n    pass",
    "print(sum(t['states']['running_ns'] for t in states.document['threads']) > 0)",
    "%giltracer",
    """%%giltracer fresh --fresh --probes preload --python-trace none
print('in a new process', 'answer' in globals())""",
]

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
outputs = [c.outputs for c in notebook.cells]
options = [outputs.pop(i)[0]["text"] for i in (3, 5)]
assert options == ["options of each %%giltracer: --state-detect\n", "options of each %%giltracer: none\n"]
running, _ = outputs.pop(4)[0]["text"], outputs.pop(3)
assert running == "True\n", "thread states were asked for"
shown = [o["data"]["text/html"] for o in outputs[1] if o.output_type == "display_data"]
assert len(shown) == 1, outputs[1]
assert re.search(r"<p>[^<]*\bspin \(", shown[0]), shown[0][:2000]
assert "<table><tr><th>thread</th>" in shown[0] and 'sandbox="allow-scripts' in shown[0]
page = re.search(r'<iframe srcdoc="([^"]*)"', shown[0])[1]
assert len(page) > 50000 and "&lt;!DOCTYPE html&gt;" in page[:200], page[:200]
answer, kind, wait_ns = json.loads(outputs[2][0]["text"])
assert answer == 42, "the cell runs in the notebook's own namespace"
assert kind in ("gil-bound", "cpu-starved"), kind  # the latter on a busy machine
assert wait_ns > 1e8, wait_ns
text = "".join(o.get("text", "") for o in outputs[3])
assert text == "in a new process False\n", text
assert any(o.output_type == "display_data" for o in outputs[3])
print("ok")
