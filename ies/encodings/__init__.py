"""The paper's encodings: `flatten` (Theorem 9), `binarize` (Proposition 12).

| module | holds |
|---|---|
| `orders` | a linear order on every type (Proposition 8), and ranks |
| `coding` | a system whose auxiliaries are stored in another form: decode, run, encode |
| `flatten` | nested sets as flat ones, by p and q |
| `binarize` | relations of any arity as binary ones |
"""
