"""Arrow tables, and what the process imports for them."""

import subprocess
import sys


def test_arrow_makes_arrays_without_importing_pandas_and_converts_to_it_on_demand():
    program = (
        "import sys, pyarrow as pa\n"
        "from decon_core.schemas import RECORDS\n"
        "table = pa.Table.from_pylist([{'n': 1}, {'n': None}])\n"
        "print('pandas' in sys.modules)\n"
        "import pandas as pd\n"
        "print(table.to_pandas().shape, pa.Table.from_pandas(pd.DataFrame({'n': [2]})).num_rows)\n"
        "print(pa.array(pd.Series(['a', None])).to_pylist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False", "(2, 1) 1", "['a', None]"]
