ALTER TABLE "operations"."log_chunks" ADD COLUMN "packed" "bytea";--> statement-breakpoint
CREATE INDEX "log_chunks_hot" ON "operations"."log_chunks" USING btree ("operation_id") WHERE packed is null;