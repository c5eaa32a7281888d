"""From planned texts to translations: through the engine, mended, spelt, and streamed."""
