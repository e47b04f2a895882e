"""A package, because PyArrow 17 brings one of this name, and namespaces come after packages."""
