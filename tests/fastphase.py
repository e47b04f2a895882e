"""Parameter files as fastPHASE writes them."""


def write_fastphase(prefix, mosaic):
    """Write the files of a mosaic, with 1 the first character of every site."""
    for name, values in (("rhat", mosaic.r[:, None]), ("alphahat", mosaic.alpha), ("thetahat", mosaic.theta)):
        rows = "\n".join(" ".join(map(repr, row)) for row in values.tolist())
        prefix.with_name(f"{prefix.name}_{name}.txt").write_text(f"> start 0\n{rows}\n")
    prefix.with_name(f"{prefix.name}_origchars").write_text(f"{len(mosaic.r)}\n" + "2\t10\n" * len(mosaic.r))
