"""The tables of the derandomized knockoffs with all draws of a data set solved at once, by torch: minutes on a GPU.

    PYTHONPATH=src python benchmarks/derandomized_batched.py results --minutes 8 --workers 4
    PYTHONPATH=src python benchmarks/derandomized_batched.py results --table                # the table again, seconds

Settings, rules and figures are those of ``derandomized.py``; what differs is the solver. For one data set X the
amplitudes share X, noise and knockoffs. All draws, amplitudes and folds walk down the path of penalties together, by
accelerated proximal gradient steps (FISTA) on [X, X_tilde]; the penalty is that of the smallest held-out loss, as in
``LassoPathCV`` and ``LogisticPathCV``, whose coefficients it agrees with (``--check``). Starting from zero, these steps
treat all columns alike, so that no random swap is needed. Every data set adds its rows to ``rows.jsonl``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
import torch  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402

sys.path[:0] = [str(Path(__file__).parent), "benchmarks"]
from derandomized import FULL, QUICK, Setting, rules  # noqa: E402

from knockoffs.filter import false_discovery_proportion, power  # noqa: E402
from knockoffs.sampling.diagonal import solve_diagonal  # noqa: E402

N_FOLDS, N_ALPHAS, RATIO = 5, 100, 1e-3  # those of LassoPathCV
PATH_TOL, FINAL_TOL = 1e-2, 1e-5  # largest step of a coefficient, times curvature, relative to the penalty
PATH_STEPS, FINAL_STEPS = 60, 3000
SINGLES = 20  # draws taken one at a time
ALONE = ("single", "single_post_hoc")


def make_data(setting: Setting, data: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, shape (n, p), y of every amplitude, (amplitudes, n), and which features matter."""
    rng = np.random.default_rng([setting.n, setting.p, setting.k, data])
    n, p = setting.n, setting.p
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(toeplitz(0.5 ** np.arange(p))).T
    where = np.arange(setting.k) * (p // setting.k)
    extra, noise = rng.normal(size=setting.k), rng.random(n) if setting.logistic else rng.normal(size=n)
    y = []
    for amplitude in setting.amplitudes:
        signal = X[:, where] @ (amplitude + extra) / np.sqrt(n)
        y.append((noise < 1 / (1 + np.exp(-signal))).astype(float) if setting.logistic else signal + noise)
    return X, np.array(y), np.isin(np.arange(p), where)


class KnockoffMap:
    """X_tilde = X A + noise C for N(0, toeplitz(0.5^k)) and one choice of D."""

    def __init__(self, p: int, diagonal: str, device: str) -> None:
        covariance = toeplitz(0.5 ** np.arange(p))
        D = solve_diagonal(covariance, diagonal)
        slope = np.linalg.solve(covariance, D)
        left = 2 * D - D @ slope
        value, vector = np.linalg.eigh((left + left.T) / 2)
        root = vector * np.sqrt(np.maximum(value, 0.0))
        self.A = torch.tensor(np.eye(p) - slope, dtype=torch.float32, device=device)
        self.C = torch.tensor(root.T.copy(), dtype=torch.float32, device=device)

    def pairs(self, X: torch.Tensor, n_draws: int, generator: torch.Generator) -> torch.Tensor:
        """[X, X_tilde] of every draw, shape (n_draws, n, 2 p)."""
        noise = torch.randn((n_draws, *X.shape), device=X.device, generator=generator)
        X_tilde = X @ self.A + noise @ self.C
        return torch.cat([X.expand(n_draws, *X.shape), X_tilde], dim=2)


def soft(b: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Shrink towards zero."""
    return b - torch.clamp(b, -t, t)


class Problems:
    """L1 problems of a batch of designs: every design has P problems, each with weights of the rows and a response.

    Parameters
    ----------
    X : tensor, shape (B, n, q)
        Standardised columns.
    y : tensor, shape (B or 1, n, P)
    weights : tensor, shape (B, n, P)
        Of the rows in training; they add up to one.
    logistic : bool
    """

    def __init__(self, X: torch.Tensor, y: torch.Tensor, weights: torch.Tensor, logistic: bool) -> None:
        self.X, self.y, self.w, self.logistic = X, y, weights, logistic
        self.Xt = X.transpose(1, 2)
        self.beta = torch.zeros((X.shape[0], X.shape[2], weights.shape[2]), device=X.device)
        mean = (weights * y).sum(1, keepdim=True)
        self.b0 = torch.log(mean / (1 - mean)) if logistic else mean.expand(len(X), -1, -1).clone()
        if logistic:
            self.b0 = self.b0.expand(len(X), -1, -1).clone()
        self.curvature = self._curvature() * (0.25 if logistic else 1.0)

    def _curvature(self) -> torch.Tensor:
        """Largest eigenvalue of the weighted products of [1, X], (B, 1, P), by the power method, and 2 % more."""
        v = torch.ones((self.X.shape[0], self.X.shape[2], self.w.shape[2]), device=self.X.device)
        v *= torch.sin(torch.arange(1.0, self.X.shape[2] + 1, device=self.X.device))[None, :, None]
        size = v.norm(dim=1, keepdim=True)
        for _ in range(60):
            v = self.Xt @ (self.w * (self.X @ (v / size)))
            size = v.norm(dim=1, keepdim=True)
        return torch.clamp(1.02 * size, min=1.02)

    def predict(self, beta: torch.Tensor, b0: torch.Tensor) -> torch.Tensor:
        """Linear predictors, (B, n, P)."""
        return torch.baddbmm(b0.expand(-1, self.X.shape[1], -1), self.X, beta)

    def residual(self, beta: torch.Tensor, b0: torch.Tensor) -> torch.Tensor:
        """Weighted residuals: minus the derivative of the loss by the predictors."""
        eta = self.predict(beta, b0)
        return self.w * (self.y - (torch.sigmoid(eta) if self.logistic else eta))

    def largest(self) -> torch.Tensor:
        """Smallest penalty that leaves every coefficient at zero, (B, 1, P)."""
        return (self.Xt @ self.residual(self.beta, self.b0)).abs().amax(1, keepdim=True)

    def solve(self, alpha: torch.Tensor, tol: float, most: int, free: torch.Tensor | None = None) -> int:
        """Go on from where the last solution stands; ``free`` (B, 1, P): problems that are waited for."""
        z, z0, t = self.beta, self.b0, torch.ones_like(alpha)
        for step in range(1, most + 1):
            r = self.residual(z, z0)
            move = (self.Xt @ r) / self.curvature
            new = soft(z + move, alpha / self.curvature)
            new0 = z0 + r.sum(1, keepdim=True) / self.curvature
            # restart where the step goes against the momentum (O'Donoghue and Candes)
            against = ((z - new) * (new - self.beta)).sum(1, keepdim=True) > 0
            t = torch.where(against, 1.0, t)
            t_new = (1 + torch.sqrt(1 + 4 * t * t)) / 2
            factor = torch.where(against, 0.0, (t - 1) / t_new)
            last = step % 5 == 0 or step == most
            if last:
                change = (new - z).abs().amax(1, keepdim=True) * self.curvature / alpha
                done = change < tol if free is None else (change < tol) | ~free
            z, z0 = new + factor * (new - self.beta), new0 + factor * (new0 - self.b0)
            self.beta, self.b0, t = new, new0, t_new
            if last and bool(done.all()):
                return step
        return most


def loss_of(y: torch.Tensor, eta: torch.Tensor, logistic: bool) -> torch.Tensor:
    """Loss of every row."""
    return torch.nn.functional.softplus(eta) - y * eta if logistic else (y - eta) ** 2


def past_minimum(losses: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """Whether the walk may end, as in ``l1_path.cross_validate``; losses (steps, B, A, folds), best (B, A)."""
    mean = losses.mean(3)
    since = len(losses) - 1 - best
    at_best = torch.gather(losses, 0, best[None, :, :, None].expand(1, -1, -1, losses.shape[3]))[0]
    difference = losses[-1] - at_best
    error = difference.std(2, correction=1) / losses.shape[3] ** 0.5
    above = mean[-1] - torch.gather(mean, 0, best[None])[0]
    return (since >= 30) | ((since >= 5) & (above > 2 * error))


def fit(
    XX: torch.Tensor, y: torch.Tensor, fold_of: torch.Tensor, logistic: bool, tf32: bool
) -> tuple[torch.Tensor, torch.Tensor, dict[str, int]]:
    """Coefficients by cross-validation: (B, n, q), (A, n), (B, n) to (B, A, q) and penalties (B, A).

    They are those of standardised columns and, for numbers, of y with variance 1.
    """
    B, n, _ = XX.shape
    A = len(y)
    XX = XX - XX.mean(1, keepdim=True)
    XX = XX / XX.std(1, keepdim=True, correction=0)
    if not logistic:
        y = (y - y.mean(1, keepdim=True)) / y.std(1, keepdim=True, correction=0)
    held = (fold_of[:, :, None] == torch.arange(N_FOLDS, device=XX.device)).float()  # (B, n, folds)
    train = torch.cat([1 - held, torch.ones((B, n, 1), device=XX.device)], dim=2)  # and all rows at last
    train = train / train.sum(1, keepdim=True)
    F = N_FOLDS + 1
    weights = train[:, :, None, :].expand(B, n, A, F).reshape(B, n, A * F)
    Y = y.T[None, :, :, None].expand(1, n, A, F).reshape(1, n, A * F)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    path = Problems(XX, Y, weights, logistic)
    largest = path.largest().reshape(B, 1, A, F)[..., -1:]  # that of all rows, for all folds
    losses, steps, n_walked = [], 0, 0
    best = torch.zeros((B, A), dtype=torch.long, device=XX.device)
    smallest = torch.full((B, A), torch.inf, device=XX.device)
    kept = torch.zeros((B, XX.shape[2], A), device=XX.device)
    kept0, alpha_kept = torch.zeros((B, 1, A), device=XX.device), largest[..., 0].clone()
    walking = torch.ones((B, A), dtype=torch.bool, device=XX.device)
    for i in range(N_ALPHAS):
        alpha = largest * RATIO ** (i / (N_ALPHAS - 1))
        every = alpha.expand(B, 1, A, F).reshape(B, 1, A * F)
        free = walking[:, None, :, None].expand(B, 1, A, F).reshape(B, 1, A * F)
        steps += path.solve(every, PATH_TOL, PATH_STEPS, free)
        row_loss = loss_of(Y, path.predict(path.beta, path.b0), logistic).reshape(B, n, A, F)[..., :-1]
        losses.append((row_loss * held[:, :, None, :]).sum(1) / held.sum(1)[:, None, :])
        mean = losses[-1].mean(2)
        better = (mean < smallest) & walking
        smallest, best = torch.where(better, mean, smallest), torch.where(better, i, best)
        last = path.beta.reshape(B, -1, A, F)[..., -1]
        kept = torch.where(better[:, None], last, kept)
        kept0 = torch.where(better[:, None], path.b0.reshape(B, 1, A, F)[..., -1], kept0)
        alpha_kept = torch.where(better[:, None], alpha[..., 0], alpha_kept)
        n_walked = i + 1
        if i % 4 == 3:
            walking &= ~past_minimum(torch.stack(losses), best)
            if not bool(walking.any()):
                break
    torch.backends.cuda.matmul.allow_tf32 = False
    final = Problems(XX, y.T[None], torch.full((B, n, A), 1.0 / n, device=XX.device), logistic)
    final.beta, final.b0 = kept, kept0
    last_steps = final.solve(alpha_kept, FINAL_TOL, FINAL_STEPS)
    counts = {"penalties": n_walked, "steps": steps, "final_steps": last_steps}
    return final.beta.transpose(1, 2), alpha_kept[:, 0], counts


def statistics(
    setting: Setting, data: int, knockoffs: KnockoffMap, device: str, tf32: bool, batch: int
) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
    """W of every amplitude and draw, (A, draws, p), and which features matter."""
    X, y, non_nulls = make_data(setting, data)
    generator = torch.Generator(device=device).manual_seed(1_000_003 * data + 10 * setting.p + setting.k)
    X = torch.tensor(X, dtype=torch.float32, device=device)
    y = torch.tensor(y, dtype=torch.float32, device=device)
    W, counts = [], {}
    n_draws = setting.M * setting.groups
    for start in range(0, n_draws, batch):
        B = min(batch, n_draws - start)
        XX = knockoffs.pairs(X, B, generator)
        fold_of = torch.rand((B, setting.n), device=device, generator=generator).argsort(1) % N_FOLDS
        coef, _, counts = fit(XX, y, fold_of, setting.logistic, tf32)
        sd = XX.std(1, correction=0)
        one, other = sd[:, : setting.p], sd[:, setting.p :]
        pooled = torch.sqrt((one**2 + other**2) / 2)
        size = coef.abs() / sd[:, None]
        W.append((pooled[:, None] * (size[..., : setting.p] - size[..., setting.p :])).transpose(0, 1).cpu().numpy())
    return np.concatenate(W, axis=1).astype(float), non_nulls, counts


def figures(setting: Setting, W: np.ndarray, non_nulls: np.ndarray) -> list[dict[str, object]]:
    """Rows of one data set: one an amplitude and rule."""
    rows = []
    for amplitude, draws in zip(setting.amplitudes, W, strict=True):
        draws = np.where(np.abs(draws) < 1e-7, 0.0, draws)  # what rounding leaves of a zero
        for name, select in rules(setting).items():
            groups = draws[:SINGLES, None] if name in ALONE else draws.reshape(-1, setting.M, draws.shape[1])
            found = [select(group) for group in groups]
            chosen = np.array([selected for selected, _ in found])
            fdp = np.array([false_discovery_proportion(selected, non_nulls) for selected in chosen])
            stated = np.array([level for _, level in found])
            over = np.where(fdp > 0, fdp / np.where(fdp > 0, stated, 1.0), 0.0)
            rows.append(
                {
                    "setting": setting.name,
                    "amplitude": amplitude,
                    "rule": name,
                    "power": float(np.mean([power(selected, non_nulls) for selected in chosen])),
                    "fdp": float(fdp.mean()),
                    "fdp_over_level": float(over.mean()),
                    "empty": float((~chosen.any(axis=1)).mean()),
                    "stated": float(np.nanmean(stated)) if np.isfinite(stated).any() else None,
                    "variance": float(chosen.var(axis=0, ddof=1).sum()) if len(chosen) > 1 else None,
                }
            )
    return rows


def table(folder: Path) -> None:
    """Means over the data sets with standard errors, as csv and on the screen."""
    found: dict[tuple[str, float, str, str], list[dict[str, object]]] = {}
    for line in (folder / "rows.jsonl").read_text().splitlines():
        row = json.loads(line)
        found.setdefault((row["diagonal"], row["setting"], row["amplitude"], row["rule"]), []).append(row)
    out = []
    for (diagonal, setting, amplitude, rule), rows in sorted(found.items(), key=lambda item: item[0][:3]):
        line = {"diagonal": diagonal, "setting": setting, "amplitude": amplitude, "rule": rule, "data_sets": len(rows)}
        for key in ("power", "fdp", "fdp_over_level", "empty", "stated", "variance"):
            column = np.array([row[key] for row in rows if row[key] is not None], dtype=float)
            line[key] = round(float(column.mean()), 4) if column.size else ""
            if key in ("power", "fdp", "fdp_over_level", "variance"):
                line[f"{key}_se"] = round(float(column.std(ddof=1) / len(column) ** 0.5), 4) if len(column) > 1 else ""
        out.append(line)
    with open(folder / "derandomized_batched.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(out[0]))
        writer.writeheader()
        writer.writerows(out)
    for line in out:
        print("  ".join(f"{value!s:>8}" for value in line.values()))


def check(setting: Setting, device: str, tf32: bool, n_draws: int) -> None:
    """Print how far coefficients and penalties are from those of the package, with the same folds."""
    from knockoffs.response.linear import LassoPathCV, LogisticPathCV

    X, y, _ = make_data(setting, 0)
    generator = torch.Generator(device=device).manual_seed(0)
    pairs = KnockoffMap(setting.p, "sdp", device).pairs(
        torch.tensor(X, dtype=torch.float32, device=device), n_draws, generator
    )
    fold_of = torch.rand((n_draws, setting.n), device=device, generator=generator).argsort(1) % N_FOLDS
    start = time.time()
    coef, alpha, counts = fit(
        pairs, torch.tensor(y, dtype=torch.float32, device=device), fold_of, setting.logistic, tf32
    )
    print(f"{setting.name}: {time.time() - start:.1f} s for {n_draws} draws, {counts}", flush=True)
    worst = 0.0
    for b in range(n_draws):
        for a, amplitude in enumerate(setting.amplitudes):
            XX = pairs[b].cpu().numpy().astype(float)
            scale = XX.std(axis=0) / (1.0 if setting.logistic else y[a].std())
            start = time.time()
            model = (LogisticPathCV if setting.logistic else LassoPathCV)(folds=fold_of[b].cpu().numpy())
            model.fit(XX, y[a].astype(int) if setting.logistic else y[a])
            mine, theirs = coef[b, a].cpu().numpy(), np.ravel(model.coef_) * scale
            seconds, other = time.time() - start, model.alpha_
            again = (LogisticPathCV if setting.logistic else LassoPathCV)(alpha=float(alpha[b, a]))
            again.fit(XX, y[a].astype(int) if setting.logistic else y[a])
            apart = np.abs(mine - np.ravel(again.coef_) * scale).max()
            worst = max(worst, apart)
            print(
                f"  draw {b} amplitude {amplitude:g}: penalty {float(alpha[b, a]):.5f} and {other:.5f}, coefficients "
                f"apart {apart:.1e} at the same penalty, {np.abs(mine - theirs).max():.1e} at its own; "
                f"{(theirs != 0).sum()} nonzero, {seconds:.1f} s",
                flush=True,
            )
    print(f"{setting.name}: largest difference of a coefficient at the same penalty {worst:.1e}")


def main() -> None:
    """Draw until time is up, all settings in turn; then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--workers", type=int, default=2, help="processes that apply the rules to W")
    parser.add_argument("--batch", type=int, default=100, help="draws at a time")
    parser.add_argument("--data-sets", type=int, default=100)
    parser.add_argument("--only", nargs="*", help="names of settings")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--diagonal", nargs="*", default=["sdp"], help="the paper uses the SDP")
    parser.add_argument("--exact", action="store_true", help="no TF32 on the path")
    parser.add_argument("--check", type=int, default=0, help="draws to compare with the package's models")
    parser.add_argument("--table", action="store_true", help="the table only")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    start = time.time()
    if options.table:
        table(options.folder)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = [s for s in (QUICK if options.quick else FULL) if not options.only or s.name in options.only]
    if options.check:
        for setting in settings:
            check(setting, device, not options.exact, options.check)
        return
    pool = ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"))
    path = options.folder / "rows.jsonl"
    there = set()
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            there.add((row["diagonal"], row["setting"], row["data"]))
    waiting = []

    def collect(block: bool) -> None:
        for item in list(waiting):
            future, more = item
            if block or future.done():
                with open(path, "a") as file:
                    file.writelines(json.dumps(row | more) + "\n" for row in future.result())
                waiting.remove(item)

    maps: dict[tuple[int, str], KnockoffMap] = {}
    longest: dict[tuple[str, str], float] = {}
    for diagonal in options.diagonal:
        for data in range(options.data_sets):
            for setting in settings:  # all settings fill up together
                key = (setting.name, diagonal)
                left = 60 * options.minutes - (time.time() - start)
                if left < 1.5 * longest.get(key, 0.0) or (diagonal, setting.name, data) in there:
                    continue
                begun = time.time()
                place = (setting.p, diagonal)
                if place not in maps:
                    maps[place] = KnockoffMap(setting.p, diagonal, device)
                    print(f"D of {setting.p} columns by {diagonal}: {time.time() - begun:.1f} s", flush=True)
                begun = time.time()
                W, non_nulls, counts = statistics(setting, data, maps[place], device, not options.exact, options.batch)
                seconds = time.time() - begun
                longest[key] = max(longest.get(key, 0.0), seconds if data else 0.0)
                future = pool.submit(figures, setting, W, non_nulls)
                waiting.append((future, {"data": data, "diagonal": diagonal}))
                collect(block=len(waiting) > 50)
                print(f"{setting.name} {diagonal} {data}: {seconds:.2f} s {counts}", flush=True)
    collect(block=True)
    pool.shutdown()
    print(f"{time.time() - start:.0f} s in all")
    table(options.folder)


if __name__ == "__main__":
    main()
