"""Treebanks written by hand."""

PLAIN = """\
# newdoc id = one
# sent_id = one-1
# text = Mary didn't see the dogs.
1\tMary\tMary\tPROPN\tNNP\tNumber=Sing\t4\tnsubj\t_\tEntity=(1-person)
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\tVBD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\tVB\t_\t0\troot\t_\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t_\tEntity=(2-animal
6\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t4\tobj\t_\tEntity=2)|SpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = one-2
# text = She ran
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\tEntity=(1-person)
2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_
2.1\tran\trun\tVERB\tVBD\t_\t_\t_\t_\t_

# newdoc id = two
# text = Go
1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
"""


def rows(*heads, relations=None, forms=None):
    """The lines of one sentence with these heads."""
    relations = relations or ["root" if not head else "dep" for head in heads]
    forms = forms or [f"w{number}" for number in range(1, len(heads) + 1)]
    lines = [
        f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_"
        for number, (form, head, relation) in enumerate(zip(forms, heads, relations, strict=True), start=1)
    ]
    return "\n".join(lines) + "\n\n"
