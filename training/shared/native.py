"""C beside a recipe, compiled for this processor when it is first needed."""

import ctypes, os, subprocess
from shared.work import WORK

P = lambda t: ctypes.c_void_p(t.data_ptr() if t is not None else 0)  # a tensor's memory; None: no tensor


def load(source, *flags):
    """The library made of a C file (in $PARLEY_WORK; made anew when the source is newer)."""
    recipe, name = source.split('/')[-2:]
    so = f'{WORK}/{recipe}-{name[:-2]}.so'
    os.makedirs(WORK, exist_ok=True)
    if not os.path.exists(so) or os.path.getmtime(so) < os.path.getmtime(source):
        subprocess.run(['gcc', '-O3', '-march=native', '-ffast-math', *flags, '-shared', '-fPIC', source, '-o', so, '-lm'], check=True)
    return ctypes.CDLL(so)
