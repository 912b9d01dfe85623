"""The paper's encodings, from system to system: `flatten` (Theorem 9) and `binarize` (Proposition
12).

| module | what it has |
|---|---|
| `orders` | a linear order on every type, from maintained orders on base types (Proposition 8), and ranks |
| `coding` | a system whose auxiliaries are stored in another form: decode, run its functions, encode |
| `flatten` | nested sets as flat ones, by p and q |
| `binarize` | relations of any arity as binary ones |
"""
