"""What are metrics called, and what is each measured in?"""

METRICS = {
    "logit_difference": "logit difference",
    "sentence_log_probability": "log-probability difference",
    "probability": "probability of the right answer",
    "kl_divergence": "KL divergence from the unchanged run",
    "accuracy": "accuracy",
}
UNITS = {
    "logit_difference": "logits",
    "sentence_log_probability": "nats",
    "probability": "of probability",
    "kl_divergence": "nats",
    "accuracy": "of accuracy",
}
