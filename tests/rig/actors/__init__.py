"""Producers, consumers and others that play a story and write down what they did. They judge nothing."""
