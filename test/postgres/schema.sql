-- The tables of postgres-storage.ts. Can be run again.

-- One row: the last id that was given. A creation updates it in the transaction that stores its pets, so ids become visible in
-- the order in which they are given. A sequence would not do: a list could show an id before a lower one is committed, and whoever
-- pages by `after` would miss that pet.
CREATE TABLE IF NOT EXISTS pet_counter (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  last_id bigint NOT NULL DEFAULT 0
);
INSERT INTO pet_counter DEFAULT VALUES ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS pets (
  id bigint PRIMARY KEY CHECK (id > 0),
  -- A JSON string, since text cannot hold U+0000. To read it as text: name #>> '{}'.
  name json NOT NULL CHECK (json_typeof(name) = 'string'),
  category_id bigint NOT NULL,
  status text NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
);
CREATE INDEX IF NOT EXISTS pets_by_status ON pets (status, id);
