"""A treebank of a few sentences in which there is something for each task that reads one."""

TREEBANK = """\
# newdoc id = one
# global.Entity = eid-etype
# sent_id = one-1
# text = Mary didn't see the dogs of John.
1\tMary\tMary\tPROPN\tNNP\tNumber=Sing\t4\tnsubj\t_\tEntity=(1-person)
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\tVBD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\tVB\t_\t0\troot\t_\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t_\tEntity=(2-animal
6\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t4\tobj\t_\t_
7\tof\tof\tADP\tIN\t_\t8\tcase\t_\t_
8\tJohn\tJohn\tPROPN\tNNP\tNumber=Sing\t6\tnmod\t_\tEntity=(3-person)2)|SpaceAfter=No
9\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = one-2
# text = She sees the key on the table.
1\tShe\tshe\tPRON\tPRP\tCase=Nom|Gender=Fem|Number=Sing|Person=3|PronType=Prs\t2\tnsubj\t_\tEntity=(1-person)
2\tsees\tsee\tVERB\tVBZ\tMood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin\t0\troot\t_\t_
3\tthe\tthe\tDET\tDT\t_\t4\tdet\t_\tEntity=(4[1/2]-object
4\tkey\tkey\tNOUN\tNN\tNumber=Sing\t2\tobj\t_\tEntity=4[1/2])
5\ton\ton\tADP\tIN\t_\t7\tcase\t_\t_
6\tthe\tthe\tDET\tDT\t_\t7\tdet\t_\tEntity=(4[2/2]-object
7\ttable\ttable\tNOUN\tNN\tNumber=Sing\t4\tnmod\t_\tEntity=4[2/2])|SpaceAfter=No
8\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# sent_id = one-3
# text = Mary saw herself.
1\tMary\tMary\tPROPN\tNNP\tNumber=Sing\t2\tnsubj\t_\tEntity=(1-person)
2\tsaw\tsee\tVERB\tVBD\t_\t0\troot\t_\t_
3\therself\therself\tPRON\tPRP\tNumber=Sing\t2\tobj\t_\tEntity=(1-person)|SpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# newdoc id = two
# sent_id = two-1
# text = The keys on the table are old.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\tEntity=(1-object
2\tkeys\tkey\tNOUN\tNNS\tNumber=Plur\t7\tnsubj\t_\t_
3\ton\ton\tADP\tIN\t_\t5\tcase\t_\t_
4\tthe\tthe\tDET\tDT\t_\t5\tdet\t_\t_
5\ttable\ttable\tNOUN\tNN\tNumber=Sing\t2\tnmod\t_\tEntity=1)
6\tare\tbe\tAUX\tVBP\tMood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin\t7\tcop\t_\t_
7\told\told\tADJ\tJJ\t_\t0\troot\t_\tSpaceAfter=No
8\t.\t.\tPUNCT\t.\t_\t7\tpunct\t_\t_

# sent_id = two-2
# text = The key is on the table.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\tEntity=(1-object
2\tkey\tkey\tNOUN\tNN\tNumber=Sing\t6\tnsubj\t_\tEntity=1)
3\tis\tbe\tAUX\tVBZ\tMood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin\t6\tcop\t_\t_
4\ton\ton\tADP\tIN\t_\t6\tcase\t_\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t_\t_
6\ttable\ttable\tNOUN\tNN\tNumber=Sing\t0\troot\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t6\tpunct\t_\t_
"""
