"""Y given [X, X_tilde]: models of the target."""
