"""Exchangeable conjugates (Definition 3.1), one file each; ``knockoffs.sampling.definition`` checks them."""

# name -> "module:class", imported when first used. A conjugate that is listed here is tested, with the example that
# tests/exact/test_definition_3_1.py asks for.
CONJUGATES: dict[str, str] = {
    "identity": "knockoffs.sampling.network:Identity",
    "independent": "knockoffs.sampling.conjugates.independent:Independent",
    "gaussian": "knockoffs.sampling.conjugates.gaussian:Gaussian",
    "joint_table": "knockoffs.sampling.conjugates.joint_table:JointTable",
    "markov_chain": "knockoffs.sampling.conjugates.markov_chain:MarkovChain",
    "jump_chain": "knockoffs.sampling.conjugates.markov_chain:JumpChain",
    "grouped_chain": "knockoffs.sampling.conjugates.markov_chain:GroupedChain",
    "metropolized": "knockoffs.sampling.conjugates.metropolized:Metropolized",
}
