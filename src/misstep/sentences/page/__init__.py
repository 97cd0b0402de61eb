"""The words of the web page, by the key it uses; `sentences.typescript` writes web/src/**/words from them."""
