"""The core: Algorithm 1, its conjugates, and the matrix D of Gaussian knockoffs. No family is named in here."""
