CREATE TABLE "catalog"."observation_history" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."observation_history_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"rid" bigint NOT NULL,
	"source" text NOT NULL,
	"check_key" text NOT NULL,
	"status" text NOT NULL,
	"observed_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"summary" text,
	"evidence_refs" jsonb DEFAULT '[]' NOT NULL,
	"command_id" uuid NOT NULL,
	"operation_id" uuid
);
--> statement-breakpoint
CREATE INDEX "observation_history_at" ON "catalog"."observation_history" USING btree ("rid","observed_at","id");--> statement-breakpoint
CREATE INDEX "observation_history_old" ON "catalog"."observation_history" USING brin ("observed_at");