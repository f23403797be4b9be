#!/usr/bin/env python3
"""The attacks of test_attacks.py by a thousand clients."""
# tier: long, alone, no-sanitizers (they see the same attacks by ten)
import test_attacks
from harness import main


class Many(test_attacks.Attacks):
    COUNT, BOUND, SECONDS = 1000, 256 << 20, 3
    LEAST, PART = 0.3, 5


if __name__ == "__main__":
    main()
