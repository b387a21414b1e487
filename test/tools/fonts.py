"""Writes web/fonts: the playground's typefaces with the weights that it sets, of the packages' that have all from 100 or 200 to 800.

python test/tools/fonts.py (needs fonttools and brotli)
"""

from pathlib import Path

from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "node_modules/@fontsource-variable"
OUT = ROOT / "web/fonts"

# The italic stands in running text only.
FONTS = {
    "newsreader": ("newsreader/files/newsreader-latin-wght-normal.woff2", (400, 700)),
    "newsreader-italic": ("newsreader/files/newsreader-latin-wght-italic.woff2", 400),
    "jetbrains-mono": ("jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2", (400, 700)),
}

for name, (file, weights) in FONTS.items():
    # The date of the change would make every run's file another one.
    font = TTFont(PACKAGES / file, recalcTimestamp=False)
    font = instantiateVariableFont(font, {"wght": weights})
    font.flavor = "woff2"
    font.save(OUT / f"{name}.woff2")
for package in ("newsreader", "jetbrains-mono"):
    (OUT / f"LICENSE-{package}").write_text((PACKAGES / package / "LICENSE").read_text())
