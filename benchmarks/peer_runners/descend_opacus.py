"""Opacus's descent, by hooks or by ghost clipping: python -m peer_runners.descend_opacus MODE ...

Prints the CPU seconds of the first step and of all others, as `descend.py` does for ours. Sampling
is Opacus's Poisson sampling, noise its default (torch's generator, not its secure mode).
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

ROWS, UNITS, CLIP, NOISE, RATE = 5000, 128, 1.0, 1.0, 0.05


def main() -> None:
    mode, features, lot, steps = sys.argv[1], *map(int, sys.argv[2:])
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    rows = TensorDataset(2 * torch.rand(ROWS, features) - 1, torch.ones(ROWS, 1))
    model = torch.nn.Sequential(
        torch.nn.Linear(features, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, 1)
    )
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    loss = torch.nn.BCEWithLogitsLoss()
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=optimiser,
        data_loader=DataLoader(rows, batch_size=lot),
        criterion=loss,
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=True,
        grad_sample_mode=mode,
    )
    if mode == "ghost":
        model, optimiser, loss, loader = made
    else:
        model, optimiser, loader = made
    taken, first = 0, 0.0
    start = time.process_time()
    while taken < steps:
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss(model(inputs), labels).backward()
            optimiser.step()
            taken += 1
            if taken == 1:
                first = time.process_time()
            if taken == steps:
                break
    print(json.dumps({"first": first - start, "rest": time.process_time() - first}))


if __name__ == "__main__":
    main()
