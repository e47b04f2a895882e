"""
Which words distinguish takeover stories from other news?
=========================================================

Word counts are not Gaussian, and words of one topic occur together. The knockoffs of this example come from LDA: given
the topics of a document and its rate of words, the counts are independent Poisson numbers, and are resampled.
"""

# %%
# The table: half of 7,674 newswire stories (Reuters R8), the counts of 300 words, and the subject. Without the data
# folder (KNOCKOFFS_DATA), documents are simulated: three topics, and a label that depends on ten words.
import os
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from knockoffs import KnockoffSelector
from knockoffs.features.lda import LatentDirichlet, fit_latent_dirichlet
from knockoffs.response.linear import LogisticPathCV

rng = np.random.default_rng(0)
path = Path(os.environ.get("KNOCKOFFS_DATA", "")) / "text" / "r8_counts.npz"
if path.is_file():
    with np.load(path) as file:
        counts = csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        vocabulary, label = file["vocab"], file["label_names"][file["label"]]
    frequent = np.sort(np.argsort(-np.bincount(counts.indices), kind="stable")[:300])  # words of the most stories
    X = counts[:, frequent].toarray().astype(int)
    some = np.flatnonzero(X.sum(axis=1))[::2]
    X, y, words, n_topics = X[some], label[some] == "acq", tuple(vocabulary[frequent].astype(str)), 30
else:
    print("KNOCKOFFS_DATA names no folder with text/r8_counts.npz: the documents are made up")
    beta = rng.dirichlet(np.full(100, 0.2), size=3) * 0.9 + 0.001
    X = LatentDirichlet(np.full(3, 0.2), beta / beta.sum(axis=1, keepdims=True), 5.0, 20.0).sample(1500, rng)
    y = X[:, :10].sum(axis=1) + rng.standard_normal(len(X)) > 10
    words, n_topics = tuple(f"word {j}" for j in range(100)), 3
print(f"{X.shape[0]} stories, {X.shape[1]} words, {y.mean():.1%} in the class")

# %%
# The model of the features: thirty topics, the distribution of the lengths, and a sampler of the topics of each story.
topics = fit_latent_dirichlet(X, rng=rng, n_topics=n_topics)
for t in np.argsort(-topics.alpha)[:5]:
    print(f"alpha {topics.alpha[t]:.3f}:", " ".join(words[v] for v in np.argsort(-topics.beta[t])[:8]))

# %%
# Knockoffs, an L1-logistic regression on words and knockoffs together, and the filter.
selector = KnockoffSelector(0.2, feature_model=topics, estimator=LogisticPathCV(random_state=0), random_state=rng)
selection = selector.fit(pd.DataFrame(X, columns=list(words)), y).selection_
print(selection.explain())
print("selected:", ", ".join(selection.selected_names))

# %%
# The twenty words with the largest W. Those right of the threshold are selected.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    order = np.argsort(-selection.W)[:20][::-1]
    plt.barh([words[j] for j in order], selection.W[order])
    if np.isfinite(selection.threshold):
        plt.axvline(selection.threshold, color="k", linestyle="--")
    plt.xlabel("W: coefficient of the word minus that of its knockoff")
    plt.tight_layout()
