"""What several tests share: models, bundles, servers, texts."""

from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
MODEL = ROOT / "models" / "en-pt"
