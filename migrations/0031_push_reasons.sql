-- Reasons are names that the code knows. Versions before write no others. A migration for each table: none is held while the next is
-- waited for, as statements that touch several of them take them in another order.
SET LOCAL lock_timeout = '5s';

ALTER TABLE push_notifications
    ADD CONSTRAINT reason_is_known CHECK (reason IN ('REPLAYED', 'CANCELLED')) NOT VALID;
