"""Writes web/fonts/newsreader-italic.woff2: Newsreader's italic at the one weight that the playground sets, of the package's that has all from 200 to 800.

python test/tools/newsreader_italic.py (needs fonttools and brotli)
"""

from pathlib import Path

from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "node_modules/@fontsource-variable/newsreader"

# The date of the change would make every run's file another one.
font = TTFont(PACKAGE / "files/newsreader-latin-wght-italic.woff2", recalcTimestamp=False)
font = instantiateVariableFont(font, {"wght": 400})
font.flavor = "woff2"
font.save(ROOT / "web/fonts/newsreader-italic.woff2")
(ROOT / "web/fonts/LICENSE").write_text((PACKAGE / "LICENSE").read_text())
