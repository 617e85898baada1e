"""Commands of ``rooflinekit plot`` that draw speculation, and what all its commands share."""
