"""From planned texts to translations: through the engine, detokenized, mended and streamed."""
